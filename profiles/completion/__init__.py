"""How does a topology become a cluster?  One file a part: scale-up, NICs, fabric, what the catalogue agrees on."""
