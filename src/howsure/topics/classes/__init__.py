"""Class probabilities: does what a model gives 85 % happen in 85 %?"""
