"""The methods the paper compares with, on maintained libraries, each with the paper's encoder where it asks so."""
