"""Programs that show how Priors is used."""
