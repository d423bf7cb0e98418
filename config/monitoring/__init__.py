"""Alert rules and a dashboard, each made of one table: `make monitoring` writes their files anew."""
