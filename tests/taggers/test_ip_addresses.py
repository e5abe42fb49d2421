"""IP addresses: what is one, which are public, and how long it takes."""

import ipaddress
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taggers.ip_addresses import IpAddresses
from toolkit import Document

ALL = IpAddresses(reserved=True)


def found(text: str, tagger: IpAddresses = ALL) -> list[str]:
    return [text[span.start : span.end] for span in tagger.tag(Document(text))]


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "255.255.255.255",
        "0.0.0.0",
        "2001:db8::1",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "2001:db8:85a3::8a2e:370:7334",
        "fe80::1",
        "::1",
        "2a00::",
        "::ffff:192.0.2.128",
        "1:2:3:4:5:6:7:8",
    ],
)
@pytest.mark.parametrize("around", ["{}", "[{}]:8080", "({}).", "{}/24", "ip={};", "地址{}的", '"{}"', "von {}, dann"])
def test_an_address_and_nothing_around_it(address: str, around: str) -> None:
    assert found(around.format(address)) == [address]


@pytest.mark.parametrize(
    "text",
    ["1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "v1.2.3.4", "1.2.3.4a", "1.2.3.4_", "1234.1.1.1", "1.2.3.1234",
     "1 .2.3.4", "1.2..3.4", "12:30:45", "00:1A:2B:3C:4D:5E", "std::vector", "dead::beef", "1:2:3:4:5:6:7:8:9",
     "a::b::1", "::", "12345::1", "g::1", "x2001:db8::1", "2001:db8::1x", "ab:cd:" * 10 + "ef"],
)  # fmt: skip
def test_what_only_looks_like_one(text: str) -> None:
    assert found(text) == []


def test_which_are_wanted() -> None:
    text = "8.8.8.8 10.0.0.1 127.0.0.1 2a00:1450:4001::200e fe80::1 ::ffff:8.8.8.8"
    assert found(text, IpAddresses()) == ["8.8.8.8", "2a00:1450:4001::200e", "::ffff:8.8.8.8"]
    assert found(text, IpAddresses(v6=False)) == ["8.8.8.8", "8.8.8.8"]
    assert found(text, IpAddresses(v4=False)) == ["2a00:1450:4001::200e", "::ffff:8.8.8.8"]
    assert found("IP:8.8.8.8, 2a00::1: gone") == ["8.8.8.8", "2a00::1"]
    assert found(text) == text.split()


@given(st.ip_addresses(), st.sampled_from(["{}", "a {} b", "[{}]", "{},"]))
def test_every_address_is_found(address: ipaddress.IPv4Address | ipaddress.IPv6Address, around: str) -> None:
    text = str(address)
    if any(map(str.isdecimal, text)):
        assert found(around.format(text)) == [text]
        assert found(text, IpAddresses()) == [text] * address.is_global


@given(st.text(st.sampled_from("0125af:.%x "), max_size=25))
def test_only_addresses_are_found(text: str) -> None:
    assert all(ipaddress.ip_address(address) for address in found(text))


@pytest.mark.parametrize(
    "piece", ["1", ":", "1.", "1.1.1.1", "::", "1:", "a:", ":1:", "ffff:", "1.1.1.1.", "::1 ", "::1.1"]
)
def test_time_is_linear(piece: str) -> None:
    text = piece * (250_000 // len(piece))
    began = time.process_time()
    IpAddresses().tag(Document(text))
    assert time.process_time() - began < 10
