import Storefront

// This is a separate file, because tests can only import a library.
await StorefrontCommand.main()
