"""Tests of `./x`. System programs are played by stand-ins, named as such; see `stand_ins`."""
