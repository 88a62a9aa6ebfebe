"""Features by templates, as the files of CRF++ and Wapiti say them."""
