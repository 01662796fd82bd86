"""Keeps several compressions of one output, of which agents are shown the best rated one."""
