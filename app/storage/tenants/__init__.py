"""Tenants: every row belongs to exactly one."""
