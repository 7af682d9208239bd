"""Monitoring of workflow runs: status, resource usage and estimates."""
