"""The demo: train and measure a small network, plan its next run, and race the recommendation against others."""
