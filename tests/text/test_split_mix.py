"""SplitMix64 gives the numbers that its authors' program gives."""

from toolkit.text.kernels.split_mix import sequence


def test_the_first_numbers_from_the_state_0() -> None:
    assert sequence(3) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert sequence(0) == []
