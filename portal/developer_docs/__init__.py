"""The documentation site: the guide, recipes and downloads, and the page that shows the API's document."""
