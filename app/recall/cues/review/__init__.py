"""Keeps a store of cues sound: probes, a first library, and proposals that a person decides on."""
