"""`tensorflow.examples`: what other people's programs import from it. See tutorials/."""
