"""The trainer that the image and language experiments share."""
