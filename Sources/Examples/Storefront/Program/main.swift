import Storefront

// A file of its own, since tests can import a library only.
await StorefrontCommand.main()
