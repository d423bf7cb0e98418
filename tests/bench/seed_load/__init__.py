"""Orders that never happened, by COPY: for the bench, and for whoever wants to see the pages over a large database."""
