"""Interface to Moses: ``moses.ini``, n-best lists, and Moses' own programs."""
