/// The version of Strata, with which CHANGELOG.md begins.
package enum StrataVersion {
    /// The three numbers of the version, as the tag has them.
    package static let current = "0.9.0"
}
