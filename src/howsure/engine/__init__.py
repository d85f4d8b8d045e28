"""What a measure, an array, a view, a record and a finding are. It knows no topic."""
