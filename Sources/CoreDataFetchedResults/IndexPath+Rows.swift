#if os(Linux)
import CoreDataEssentials
import Foundation

// UIKit and AppKit add these members; Foundation alone does not have them.

extension IndexPath {
    /// A path to a row of a section.
    ///
    /// - Parameters:
    ///   - row: The position in the section, from 0.
    ///   - section: The position of the section, from 0.
    public init(row: Int, section: Int) { self.init(indexes: [section, row]) }

    /// A path to an item of a section.
    ///
    /// - Parameters:
    ///   - item: The position in the section, from 0.
    ///   - section: The position of the section, from 0.
    public init(item: Int, section: Int) { self.init(indexes: [section, item]) }

    /// The section: the first of the path's two numbers.
    public var section: Int {
        get { self[0] }
        set { self[0] = newValue }
    }

    /// The place in the section: the second of the path's two numbers.
    public var row: Int {
        get { self[1] }
        set { self[1] = newValue }
    }

    /// The same as ``row``.
    public var item: Int {
        get { self[1] }
        set { self[1] = newValue }
    }
}
#endif
