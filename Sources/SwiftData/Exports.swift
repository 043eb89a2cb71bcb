@_exported import Observation

// Types that Foundation has on Apple's platforms only, as far as the API names them.
@_exported import struct CoreData.NSValueTransformerName
@_exported import class CoreData.UndoManager
@_exported import class CoreData.ValueTransformer
