"""From a spectrum and a training budget to a schedule: the layer under the command line, HTML report and studio."""
