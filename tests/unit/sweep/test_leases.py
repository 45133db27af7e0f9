from __future__ import annotations

import time
from typing import Any

from study.sweep.leases import LEASE_S, RENEW_EVERY_S, is_fresh, new_lease


def lease(**changes: Any) -> dict[str, Any]:
    return {**new_lease(), **changes}


def test_a_lease_is_held_by_that_very_process_whatever_its_age() -> None:
    assert is_fresh(lease(expires=0))
    assert not is_fresh(lease(started=lease()["started"] - 1000))


def test_a_lease_from_elsewhere_counts_by_its_age() -> None:
    assert is_fresh(lease(host="elsewhere", expires=time.time() + 1))
    assert not is_fresh(lease(host="elsewhere", expires=time.time() - 1))


def test_a_container_of_the_same_host_name_is_elsewhere() -> None:
    other = lease(pid_namespace="pid:[1]", pid=2**22 + 1)
    assert is_fresh(other)
    assert not is_fresh({**other, "expires": time.time() - 1})


def test_a_lease_survives_several_missed_renewals() -> None:
    assert LEASE_S >= 5 * RENEW_EVERY_S
