"""Says why something is as it is: decisions, their reasons, what failed, and the turns that say so."""
