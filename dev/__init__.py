"""What `./x` is made of; see `commands` for the entry and `suite` for the stages."""
