"""What the server answers, as frozen values: those of `memsvc.contract`, under the names that programs know.

Sizes are bytes; times are aware; paths are paths of the tree.
"""

from memsvc.contract.accounts import KeyInfo as KeyInfo
from memsvc.contract.accounts import Me as Me
from memsvc.contract.accounts import NewKey as NewKey
from memsvc.contract.accounts import TreeDetail as TreeDetail
from memsvc.contract.accounts import TreeInfo as TreeInfo
from memsvc.contract.accounts import Usage as Usage
from memsvc.contract.context import Context as Context
from memsvc.contract.entries import EntryRead as EntryRead
from memsvc.contract.entries import EntryRetired as EntryRetired
from memsvc.contract.entries import EntryWritten as EntryWritten
from memsvc.contract.entries import Highlight as Highlight
from memsvc.contract.entries import Hit as Hit
from memsvc.contract.erasures import Erased as Erased
from memsvc.contract.erasures import ErasedPlace as ErasedPlace
from memsvc.contract.erasures import ErasureCertificate as ErasureCertificate
from memsvc.contract.files import BatchResult as BatchResult
from memsvc.contract.files import Deleted as Deleted
from memsvc.contract.files import Downloaded as Downloaded
from memsvc.contract.files import Edited as Edited
from memsvc.contract.files import FileBytes as FileBytes
from memsvc.contract.files import FoundFiles as FoundFiles
from memsvc.contract.files import Listed as Listed
from memsvc.contract.files import Match as Match
from memsvc.contract.files import Matches as Matches
from memsvc.contract.files import Moved as Moved
from memsvc.contract.files import Page as Page
from memsvc.contract.files import Told as Told
from memsvc.contract.files import Uploaded as Uploaded
from memsvc.contract.files import Window as Window
from memsvc.contract.files import WriteWarning as WriteWarning
from memsvc.contract.files import Written as Written
from memsvc.contract.history import Blame as Blame
from memsvc.contract.history import BlamedLine as BlamedLine
from memsvc.contract.history import EntryChange as EntryChange
from memsvc.contract.history import EntryVersion as EntryVersion
from memsvc.contract.history import FileChange as FileChange
from memsvc.contract.history import FileDiff as FileDiff
from memsvc.contract.history import Hunk as Hunk
from memsvc.contract.history import Restored as Restored
from memsvc.contract.history import RevisionDetail as RevisionDetail
from memsvc.contract.history import UndoConflict as UndoConflict
from memsvc.contract.history import Undone as Undone
from memsvc.contract.imports import ImportDifference as ImportDifference
from memsvc.contract.imports import ImportedEntry as ImportedEntry
from memsvc.contract.imports import ImportedFile as ImportedFile
from memsvc.contract.imports import ImportReport as ImportReport
from memsvc.contract.imports import OpaqueBlock as OpaqueBlock
