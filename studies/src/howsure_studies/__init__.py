"""Methods of uncertainty, and the experiments of five papers that test them.

`howsure` judges what they predict. Each study is a folder of its own, its trials can be resumed.
"""

from howsure_studies._version import __version__ as __version__
