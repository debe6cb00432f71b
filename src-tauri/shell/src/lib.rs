//! Desktop shell.
