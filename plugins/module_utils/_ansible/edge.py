# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all modules make of AnsibleModule, on a host and on the controller. PRIVATE to the collection.

Ansible would make 4096 of "4_096" and 1 of true, end with a traceback at .inf, and show a value of a megabyte. So the
options are checked as they came, and Ansible gets them only when nothing is wrong with them.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, NoReturn, Optional

from ansible.module_utils.basic import AnsibleModule

from .._error import NearmetalError
from .._planning.options import Spec, for_ansible, validate
from .._words import sentence


class HostModule(AnsibleModule):
    """A module that runs in check mode too. `options` are checked; one that is wrong ends it with one sentence."""

    def __init__(self, name: str, spec: Spec, **rules: Any) -> None:
        """`rules` say how options exclude or demand each other, for AnsibleModule."""
        self._called, self._spec = name, spec
        self._wrong = ""
        self.options: Dict[str, Any] = {}
        super().__init__(argument_spec=for_ansible(spec), supports_check_mode=True, **rules)
        if self._wrong:
            self.fail_json(msg=self._wrong)

    def _load_params(self) -> None:
        super()._load_params()
        given = {option: value for option, value in self.params.items() if not option.startswith("_ansible_")}
        try:
            self.options = validate(self._called, self._spec, given)
        except NearmetalError as error:
            self._wrong = str(error)
            for option in given:
                del self.params[option]

    def fail_json(self, msg: str, **result: Any) -> NoReturn:
        """Fail with one readable line, whatever values are in it. A wrong option comes before what else is wrong."""
        super().fail_json(msg=sentence(self._wrong or msg), **result)


_Answer = Callable[[Mapping[str, Any]], Dict[str, Any]]


def controller_main(
    name: str, spec: Spec, answer: _Answer, forecast: Optional[_Answer] = None, **rules: Any
) -> Callable[[], None]:
    """The main() of a module that runs on the controller; in check mode `forecast` answers, if there is one."""

    def main() -> None:
        module = HostModule(name, spec, **rules)
        try:
            result = (forecast if forecast and module.check_mode else answer)(module.params)
        except NearmetalError as error:
            module.fail_json(msg=str(error))
        if result.get("failed"):
            module.fail_json(**result)
        module.exit_json(**{**result, "msg": sentence(result["msg"])})

    return main
