"""What a key may do: a word of the contract."""

from memsvc.contract.accounts import Scope as Scope
