//! A person's files: confined access, versions by content hash.
