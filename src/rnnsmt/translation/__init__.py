"""A tuned system at work: raw text in, raw text out, from the command line, from Python, and over HTTP."""
