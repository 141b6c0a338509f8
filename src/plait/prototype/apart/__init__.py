"""One end of a connection whose other end is on another host.

plait's agent relays the datagrams, so this process opens no sockets. Each end counts times from the zero of its host.
"""
