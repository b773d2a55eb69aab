"""From a spectrum and a budget to a schedule: what the command line, the HTML report and the studio share."""
