"""The supply curve of flexible power: what each kilowatt less costs over a window."""
