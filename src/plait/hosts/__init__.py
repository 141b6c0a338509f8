"""hosts.yaml: real hosts, how to reach them, and what plait may do on their lines."""
