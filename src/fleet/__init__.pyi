from fleet.api import connect as connect
from fleet.api import connect_async as connect_async

__version__: str
