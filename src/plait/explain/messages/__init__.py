"""Why messages were late or lost. Why a bulk flow was slow is explained by the modules above this folder."""
