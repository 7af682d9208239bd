"""Word alignment and symmetrisation."""
