"""Figures of trained models: learning curves, tuning curves, phrase scores, embeddings."""
