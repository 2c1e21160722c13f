import torch


def make_match_reference(reference, rtol=1e-5, atol=1e-8):
    """A check of a submission's output: (right or not, what is wrong)."""

    def check_implementation(data, output):
        expected = reference(data)
        if output.shape != expected.shape:
            return False, f"shape {tuple(output.shape)}, expected {tuple(expected.shape)}"
        good = torch.allclose(output, expected, rtol=rtol, atol=atol)
        return good, "" if good else f"off by {(output - expected).abs().max().item():.3g}"

    return check_implementation
