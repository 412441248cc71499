"""What the scripts do: one module for each rule, for the workflow and by hand."""
