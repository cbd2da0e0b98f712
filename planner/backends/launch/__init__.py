"""How is a script started on every rank?  One ``LaunchSpec``, one file a launcher."""
