"""Settings, their checks, and what the rules of the workflow compute from them: texts, systems, paths."""
