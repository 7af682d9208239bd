"""Moses' own files: moses.ini and what it names."""
