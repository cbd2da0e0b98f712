"""From a topology to a cluster, one file a part: scale-up, NICs, fabric, what the catalogue agrees on."""
