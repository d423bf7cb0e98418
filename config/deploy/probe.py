"""The container's health check: exits 0 if the web process in it answers. `python -m config.deploy.probe`"""

import urllib.request

ADDRESS = "http://127.0.0.1:8000/livez"

if __name__ == "__main__":
    urllib.request.urlopen(ADDRESS, timeout=3).close()
