"""The oldest versions that may be installed, from a project's lower bounds."""

from tools.oldest import oldest


def test_lower_bounds_become_pins():
    """Of what ronda needs and its extras, each once; not of what only developers need."""
    project = {
        "dependencies": ["numpy>=2.0.2", "plain"],
        "optional-dependencies": {
            "traces": ["pandas>=2.2.2", "a-b_c>=3.2,<4"],
            "predict": ["pandas>=2.2.2"],
            "all": ["ronda[predict,traces]"],
            "dev": ["pytest>=8.2"],
        },
    }
    assert list(oldest(project)) == ["a-b_c==3.2", "numpy==2.0.2", "pandas==2.2.2"]
