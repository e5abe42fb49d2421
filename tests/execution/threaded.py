"""A module that begins a thread where it is imported, as libraries do."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
