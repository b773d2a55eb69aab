"""The training loop that the image and language experiments share."""
