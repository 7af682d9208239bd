"""Monitoring of workflow runs."""
